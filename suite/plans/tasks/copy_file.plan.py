source = search_files("vacation-plans")[0]
content = get_file_by_id(file_id=source["id"])["content"]
new_file = create_file(filename="copy-of-vacation-plans.docx", content=content)
print(new_file["id"])
