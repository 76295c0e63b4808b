import datetime as dt

text = read_file("contract.txt")
deadline = ask(f"When does this contract end? {text}", dt.date)
if deadline is None:
    print("no end")
else:
    left = (deadline - dt.date.today()).days
    print(f"ends on {deadline:%d %B %Y}, in {left} days")
