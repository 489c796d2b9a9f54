"""Alembic's entry: runs the steps on the connection, and in the transaction, that `Ledger.open` hands over."""

from alembic import context

from gpu_worker.broker.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
