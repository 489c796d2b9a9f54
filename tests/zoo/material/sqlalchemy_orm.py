# %% [markdown]
# needs: sqlalchemy

# %%
from sqlalchemy import ForeignKey, String, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
class Base(DeclarativeBase):
    pass
class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(30))
    books: Mapped[list["Book"]] = relationship(back_populates="author")
class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")
print(sorted(Base.metadata.tables))

# %%
ann = Author(id=1, name="Ann")
ann.books.append(Book(id=1, title="One"))
print(ann.books[0].author is ann)

# %%
book = Book(id=2, title="Two", author=ann)
print([b.title for b in ann.books], ann.books[1] is book)

# %%
query = select(Book).join(Author).where(Author.name == "Ann")
print(str(query).split()[0], Book.__table__.c.title.type)

# %%
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine, expire_on_commit=False) as session:
    session.add(ann)
    session.commit()
    print([b.title for b in session.scalars(query)])

# %%
ann.name = "Anna"
print(ann.name, [b.title for b in ann.books], book.author.name)
