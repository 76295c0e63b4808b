from dataclasses import dataclass, field

@dataclass
class Line:
    product: str
    amount: float

@dataclass
class Order:
    customer: str
    lines: list[Line] = field(default_factory=list)

text = read_file("orders.txt")
orders = ask(f"Which orders are in this text? {text}", list[Order]) or []
for order in orders:
    total = sum(line.amount for line in order.lines)
    print(f"{order.customer}: {len(order.lines)} lines, {total:.2f}")
