"use strict";

const Mustache = require("mustache");

const template = `<!doctype html>
<title>{{title}}</title>
<ul>
{{#words}}
<li>{{.}}</li>
{{/words}}
</ul>
`;

// page makes the text of a page. What could be markup in its words is none in it.
function page(title, words) {
  return Mustache.render(template, { title, words });
}

module.exports = { page };
