people = ["alice", "bob", "carol"]
amount = 97.5
share = round(amount / len(people), 2)
rest = round(amount - share * len(people), 2)
for i, person in enumerate(people):
    due = share + (rest if i == 0 else 0)
    send_direct_message(recipient=person, body=f"Your share is {due:.2f}")
