// Package web renders Weir's pages: templ templates with the view models that
// they show, the layout around them and the static files. The wordings of their
// texts are in models/catalog. Each file of view models stands beside the template
// of its name.
//
// A page is a function from its view model to HTML. It calls no
// service: handlers gather what it shows, and the context carries what every
// page needs (see [With]). Nothing here reads a file at run time, and nothing
// depends on scripts: they only make pages live.
//
// The content security policy allows no inline script and no inline style, so
// lengths are drawn as SVG attributes and behaviour hangs on data attributes.
package web
