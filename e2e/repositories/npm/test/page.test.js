"use strict";

const assert = require("node:assert");
const { test } = require("node:test");

const { page } = require("../src/page");

test("each word is an item", () => {
  assert.match(page("t", ["one", "two"]), /<li>one<\/li>\n<li>two<\/li>/);
});

test("markup in words is none in the page", () => {
  assert.doesNotMatch(page("t", ["<script>"]), /<script>/);
});
