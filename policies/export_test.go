package policies

// SetMaxTenants sets the size of the cache of enforcers.
func (a *Access) SetMaxTenants(n int) { a.tenants.max = n }

// CachedTenants is the number of cached enforcers.
func (a *Access) CachedTenants() int { return len(a.tenants.all) }

// ClearDecisions drops the cached decisions of a project.
func (a *Access) ClearDecisions(project int64) {
	for _, role := range a.tenants.all[project].roles {
		clear(role.decisions)
	}
}

// AccessRules is access.csv.
func AccessRules() string { return accessRules }
