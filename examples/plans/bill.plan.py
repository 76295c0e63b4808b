# Pays what the request names, and shows what the bill says.
# The recipient and the amount are literals of the plan: nothing that the bill says can change them.
text = read_file(path="bill.txt")
receipt = send_money(recipient="DE12 3456", amount=98.7, subject="bill 17")
print(receipt, "for", text.splitlines()[0])
