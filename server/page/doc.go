// Package page is the chat page that a browser gets at the server's root: HTML, styles and JavaScript modules from
// the folder web, which are part of the program. There is no build step; third-party modules are in web/vendor.
//
// The page talks to the server by its public API, as any client does. Not here: anything that the API lacks. Nothing
// that a model writes is parsed as HTML: web/markdown.js makes elements of tokens, and the policy forbids the rest.
package page
