page = 1
found = None
while found is None and page <= 5:
    content = get_webpage(f"www.shop.com/list?page={page}")
    if "blue chair" in content.lower():
        found = page
    page += 1
print(f"on page {found}" if found else "not found")
