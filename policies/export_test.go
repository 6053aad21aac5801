package policies

// SetMaxTenants sets the size of the cache of enforcers.
func (a *Access) SetMaxTenants(n int) { a.tenants.max = n }

// CachedTenants is the number of cached enforcers.
func (a *Access) CachedTenants() int { return len(a.tenants.all) }

// ClearVerdicts drops the cached verdicts of a project.
func (a *Access) ClearVerdicts(project int64) {
	for _, role := range a.tenants.all[project].roles {
		clear(role.verdicts)
	}
}

// AccessRules is access.csv.
func AccessRules() string { return accessRules }
