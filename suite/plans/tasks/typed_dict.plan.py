from typing import TypedDict, List

class Row(TypedDict):
    name: str
    total: float

rows: List[Row] = []
for order in get_orders():
    rows.append(Row(name=order["product"], total=order["total"]))
rows.sort(key=lambda r: r["total"], reverse=True)
for i, row in enumerate(rows, start=1):
    print(f"{i}. {row['name']:<20} {row['total']:>10.2f}")
