import assert from "node:assert/strict";
import { test } from "node:test";
import { inTree } from "../src/project_tree";

const show = (names, parents) => inTree(names, (name) => parents[name] ?? "").map((one) => "-".repeat(one.depth) + one.name);

test("each project stands after the one that it is in", () => {
  const parents = { vision: "ml", deep: "vision", audio: "ml" };
  assert.deepEqual(show(["deep", "ml", "guests", "vision", "audio"], parents), ["ml", "-vision", "--deep", "-audio", "guests"]);
});

test("a project in one that is not there, or in a circle, is shown all the same", () => {
  assert.deepEqual(show(["a", "b", "c"], { a: "b", b: "a", c: "gone" }), ["c", "a", "b"]);
});
