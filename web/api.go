package web

import "weir/models"

// APIView is a reference of the REST API, made from its OpenAPI document.
type APIView struct {
	Title       string
	Version     string
	Description models.Text
	Spec        string // address of the document
	Groups      []APIGroup
}

// APIGroup is the operations of one tag.
type APIGroup struct {
	Tag         models.Text
	Description models.Text
	Operations  []APIOperation
}

// APIOperation is one method on one path.
type APIOperation struct {
	ID         string // unique; its anchor
	Method     string
	Path       string
	Summary    models.Text
	Parameters []APIField
	Body       []APIField
	Responses  []APIResponse
}

// APIField is a parameter or a property of a body.
type APIField struct {
	Name        string
	In          string // path, query or header; empty for a body
	Type        string
	Required    bool
	Description string
}

// APIResponse is one response of an operation.
type APIResponse struct {
	Status      string
	Description string
	Fields      []APIField
}

// anchor is the id of an operation on the page.
func (o APIOperation) anchor() string { return "op-" + o.ID }
