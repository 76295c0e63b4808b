order = get_orders()[-1]
status = order["status"]
match status:
    case "shipped":
        print("on its way")
    case "delivered":
        print("there")
    case _:
        print(status)
