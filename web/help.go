package web

import "weir/models"

// helpText explains a term where people meet it first.
type helpText struct {
	Term, Text models.Text
	Page       string // of the documentation
}

// helpTexts are the explained terms. Each is on a page at most once.
var helpTexts = map[string]helpText{
	"cores": {models.Say("GPU cores"),
		models.Say("A GPU has 100 GPU cores, and no more are allocated at a time. 50 are half of its computing power."),
		"/docs/concepts/overview#pool"},
	"quota": {models.Say("Quota"),
		models.Say("What all members of a project together can use at the same time."),
		"/docs/concepts/overview#projects-roles-and-limits"},
	"limit": {models.Say("Limit"),
		models.Say("What each member with a role can use at the same time. Together, the limits do not exceed the quota."),
		"/docs/concepts/overview#projects-roles-and-limits"},
	"overcommit": {models.Say("Overcommit"),
		models.Say("Quotas can add up to more than the pool has. Projects may then have to wait for each other."),
		"/docs/concepts/quotas#capacity"},
	"queue": {models.Say("Queue"),
		models.Say("What waits for GPUs, oldest first. Later requests that fit may go ahead for ten minutes."),
		"/docs/operating#queue"},
	"enforcement": {models.Say("Enforcement"),
		models.Say("It decides whether a program can use more of the GPU than its share, and disturb others."),
		"/docs/concepts/guarantees"},
}
