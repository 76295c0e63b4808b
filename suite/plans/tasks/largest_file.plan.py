files = search_files("")
largest = None
for f in files:
    if largest is None or f["size"] > largest["size"]:
        largest = f
if largest:
    print(f"{largest['filename']} ({largest['size'] / 1024:.1f} KB)")
