emails = get_unread_emails()
lines = []
for email in emails:
    lines.append(f"- {email['subject']} (from {email['sender']})")
print("\n".join(lines) if lines else "No unread emails.")
