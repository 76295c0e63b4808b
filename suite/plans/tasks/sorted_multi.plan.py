orders = get_orders()
late = [o for o in orders if o["status"] not in ("delivered", "cancelled")]
late.sort(key=lambda o: o["total"], reverse=True)
top = late[:3]
total = sum(o["total"] for o in top)
print("; ".join(f"{o['product']} ({o['total']:.2f})" for o in top), f"= {total:.2f}")
