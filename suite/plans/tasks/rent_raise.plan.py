import re

text = read_file("landlord-notices.txt")
match = re.search(r"new monthly rent.*?(\d+(?:\.\d+)?)", text, re.IGNORECASE)
if match:
    new_rent = float(match.group(1))
    print(f"The new rent is {new_rent:.2f}")
else:
    print("No new rent in the notice")
