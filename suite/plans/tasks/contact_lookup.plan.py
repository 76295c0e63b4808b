contacts = search_contacts("Sarah Connor")
if len(contacts) != 1:
    print(f"found {len(contacts)} contacts")
else:
    send_email(
        recipients=[contacts[0]["email"]],
        subject="Meeting",
        body="Can we meet on Tuesday?",
    )
    print("sent")
