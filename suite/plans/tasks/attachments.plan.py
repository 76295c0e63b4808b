file = search_files("minutes")[0]
text = file["content"]
people = ask(f"Who took part in this meeting? {text}", list[str]) or []
addresses = []
for name in people:
    found = search_contacts(name)
    if found:
        addresses.append(found[0]["email"])
send_email(addresses, "Minutes", "The minutes are attached.", attachments=[file["id"]])
