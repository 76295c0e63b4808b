transactions = get_most_recent_transactions(n=100)
total = sum(t["amount"] for t in transactions if t["date"].startswith("2022-03"))
print(f"Total spending in March 2022: {total:.2f}")
