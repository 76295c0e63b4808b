from pydantic import BaseModel, Field

class Invoice(BaseModel):
    recipient: str = Field(description="IBAN of the recipient")
    amount: float = Field(ge=0)
    due: str

text = read_file(file_path="bill-december-2023.txt")
invoice = ask(f"What does this bill ask for?\n\n{text}", Invoice)
if invoice is None:
    raise ValueError("the bill could not be read")
print(f"{invoice.amount:.2f} to {invoice.recipient} until {invoice.due}")
