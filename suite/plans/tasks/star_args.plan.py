def join_names(*names):
    return ", ".join(names)

print(join_names("Alice", "Bob"))
