// Package pool owns the resources: providers and their devices, projects with
// quotas, roles with peaks, members, the shares of GPUs that workspaces hold,
// and what people ask for until somebody decides. Its services check who is
// asking, decide over a snapshot by the pure packages placement and timeline,
// and commit in one transaction.
//
// It must not know what a share is used for, how a workspace is run, nor
// HTTP.
package pool
