package handlers

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
)

// changeScopes are the scopes that changes need, by tag. The others need admin.
var changeScopes = map[string]models.TokenScope{"Projects": models.ScopeProject, "Files": models.ScopeLaunch,
	"Requests": models.ScopeProject, "Workspaces": models.ScopeLaunch, "Runs": models.ScopeLaunch,
	"Deployments": models.ScopeLaunch, "Reservations": models.ScopeLaunch}

// ownScopes are the scopes of operations that differ from others of their tag.
var ownScopes = map[string]models.TokenScope{"set-capacity": models.ScopeAdmin, "set-price": models.ScopeAdmin,
	"get-workspace-log": models.ScopeLaunch,
	"invite-users":      models.ScopeAdmin,
	"plan-capacity":     models.ScopeRead, "allocate-barriers": models.ScopeRead, "read-run-log": models.ScopeLaunch,
	"plan-graph": models.ScopeRead, "get-run-graph": models.ScopeLaunch,
	"put-file-rule": models.ScopeProject, "delete-file-rule": models.ScopeProject, "preview-file-rule": models.ScopeProject,
	"add-curator": models.ScopeAdmin, "remove-curator": models.ScopeAdmin, "list-available": models.ScopeLaunch,
	"list-service-tokens": models.ScopeProject}

// scopeOf is the scope that an access token needs for an operation. It is for the
// document: services check the scopes of rights.
func scopeOf(r route, tag string) models.TokenScope {
	if s, ok := ownScopes[r.id]; ok {
		return s
	}
	if r.method == http.MethodGet {
		return models.ScopeRead
	}
	if s, ok := changeScopes[tag]; ok {
		return s
	}
	return models.ScopeAdmin
}

// scopeExtension names the scope of an operation in the document: of a security scheme
// that is no OAuth, OpenAPI knows none.
const scopeExtension = "x-required-scope"

// requiredScope is the scope of an operation in the document, empty for public ones.
func requiredScope(op *huma.Operation) models.TokenScope {
	scope, _ := op.Extensions[scopeExtension].(models.TokenScope)
	return scope
}

// isPublic reports whether an operation needs no authentication.
func isPublic(op *huma.Operation) bool { return len(op.Security) > 0 && len(op.Security[0]) == 0 }
