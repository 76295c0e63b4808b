from collections import defaultdict

by_sender = defaultdict(list)
for email in search_emails(query="project"):
    by_sender[email["sender"]].append(email["subject"])
for sender, subjects in sorted(by_sender.items()):
    print(f"{sender}: {', '.join(subjects)}")
