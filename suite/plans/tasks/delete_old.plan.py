from datetime import datetime, timedelta

today = datetime.strptime(get_current_day(), "%Y-%m-%d")
limit = today - timedelta(days=30)
for email in search_emails(query="promo", sender="shop@example.com"):
    sent = datetime.fromisoformat(email["timestamp"])
    if sent < limit and not email["read"]:
        delete_email(email_id=email["id"])
