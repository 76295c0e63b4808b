grocery = ["milk", "eggs", "bread"]
file = search_files("shopping-list")[0]
current = file["content"].splitlines()
missing = [item for item in grocery if item not in current]
if missing:
    append_to_file(file_id=file["id"], content="\n" + "\n".join(missing))
print(", ".join(missing) or "nothing to add")
