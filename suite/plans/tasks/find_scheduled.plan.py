scheduled = get_scheduled_transactions()
rent = next((t for t in scheduled if "rent" in t["subject"].lower()), None)
if rent is None:
    print("no rent payment")
else:
    update_scheduled_transaction(id=rent["id"], amount=2200)
    print("updated")
