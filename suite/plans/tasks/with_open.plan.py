with open("report.txt") as f:
    print(f.read())
