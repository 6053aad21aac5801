// Package notebook renders Jupyter notebooks to what a page can show, without running
// anything: source as text, Markdown without HTML, images as data, and of other outputs
// the text.
//
// It does not depend on whose notebook it is.
package notebook
