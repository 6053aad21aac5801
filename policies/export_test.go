package policies

// KeepTenants bounds how many projects' rules are kept.
func (a *Access) KeepTenants(n int) { a.tenants.max = n }

// Tenants is how many are kept now.
func (a *Access) Tenants() int { return len(a.tenants.all) }

// ForgetVerdicts lets the rules of a project be asked again.
func (a *Access) ForgetVerdicts(project int64) {
	for _, role := range a.tenants.all[project].roles {
		clear(role.verdicts)
	}
}

// AccessRules are the rules of standings, as casbin reads them.
func AccessRules() string { return accessRules }
