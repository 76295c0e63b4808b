from datetime import datetime, timezone, timedelta

start = datetime.fromisoformat("2024-05-15T09:00:00+02:00")
utc = start.astimezone(timezone.utc)
berlin = timezone(timedelta(hours=2))
print(utc.isoformat(), datetime(2024, 5, 15, 12, tzinfo=berlin) - start)
