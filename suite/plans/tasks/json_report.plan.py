import json

orders = get_orders()
report = {
    "count": len(orders),
    "total": round(sum(o["total"] for o in orders), 2),
    "by_status": {},
}
for o in orders:
    report["by_status"][o["status"]] = report["by_status"].get(o["status"], 0) + 1
create_file(filename="report.json", content=json.dumps(report, indent=2))
