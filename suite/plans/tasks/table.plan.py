header = ["Hotel", "Price", "Rating"]
rows = [[h.name, f"{h.price:.0f}", f"{h.rating:.1f}"] for h in get_hotels("Rome")]
widths = [max(len(r[i]) for r in [header] + rows) for i in range(3)]
for row in [header, *rows]:
    print(" | ".join(cell.ljust(w) for cell, w in zip(row, widths)))
