package web

// Link is a name that leads somewhere.
type Link struct{ Label, Href string }
