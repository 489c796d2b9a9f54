"""How the ledger's tables came to be, step by step. Run by `Ledger.open`; a step that was released is never changed."""
