import datetime

today = datetime.date.today()
start = today - datetime.timedelta(weeks=2)
orders = [o for o in get_orders() if datetime.date.fromisoformat(o["day"]) >= start]
print(f"{len(orders)} orders since {start}")
