from datetime import datetime

orders = sorted(get_orders(), key=lambda o: o["day"])
dates = [datetime.strptime(o["day"], "%Y-%m-%d").date() for o in orders]
gaps = [(b - a).days for a, b in zip(dates, dates[1:])]
print(max(gaps) if gaps else 0)
