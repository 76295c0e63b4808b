seen = set()
unique = []
for email in search_emails(query="newsletter"):
    key = (email["sender"], email["subject"])
    if key in seen:
        continue
    seen.add(key)
    unique.append(email)
print(len(unique))
