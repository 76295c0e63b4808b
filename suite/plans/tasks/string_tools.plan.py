subject = "RE: fwd: project update"
clean = subject
for prefix in ("RE: ", "fwd: "):
    if clean.lower().startswith(prefix.lower()):
        clean = clean[len(prefix):]
title, _, rest = clean.partition(" ")
print(clean.title(), title.capitalize(), rest.upper().center(20, "*"), "7".zfill(3))
