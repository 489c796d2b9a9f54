# %% [markdown]
# needs: chess

# %%
import chess, chess.pgn, io
board = chess.Board()
board.push_san("e4"); board.push_san("e5")
print(board.fen(), board.legal_moves.count())

# %%
for san in ["Nf3", "Nc6", "Bb5"]:
    board.push_san(san)
print(board)

# %%
m = board.pop()
print(m, board.turn == chess.WHITE, len(board.move_stack))

# %%
board.push(m)
gen = board.generate_legal_captures()
print(sorted(map(str, gen)))

# %%
game = chess.pgn.read_game(io.StringIO('[Event "X"]\n\n1. e4 (1. d4 d5) e5 2. Qh5 {early} Nc6 *'))
node = game.next()
print(node.san(), node.parent is game, len(game.variations))

# %%
end = game.end()
new = end.add_variation(chess.Move.from_uci("f1c4"), comment="threat")
print(new.parent is end, game.headers["Event"])

# %%
print(game.end() is new, str(game.mainline_moves()))

# %%
class Counter(chess.pgn.BaseVisitor):
    def begin_game(self): self.n = 0
    def visit_move(self, board, move): self.n += 1
    def result(self): return self.n
print(game.accept(Counter()))

# %%
attack = board.attackers(chess.WHITE, chess.C6)
attack.add(chess.A1)
print(list(attack), attack & chess.SquareSet(chess.BB_FILE_A))

# %%
copy = board.copy()
copy.push_san("a6")
print(copy == board, copy.move_stack[:-1] == board.move_stack, hash(copy._transposition_key()) == hash(copy._transposition_key()))

# %%
new.nags.add(chess.pgn.NAG_GOOD_MOVE)
print(str(game).splitlines()[-1])
