package workspaces

import "weir/models"

const (
	// maxWorkspaces is the maximum of active workspaces of a member in a project. It includes
	// queued ones, so that no member can fill the queue.
	maxWorkspaces  = 20
	maxRuns        = 100 // of a member in a project that have not ended
	maxDeployments = 20  // of a member in a project that have not ended
)

func checkWorkspaceCount(n int64) error {
	if n < maxWorkspaces {
		return nil
	}
	return models.NoCapacity("", "You have %d workspaces running or waiting in this project; the maximum is %d. Stop one first.", n,
		maxWorkspaces)
}

func checkRunCount(n int64) error {
	if n < maxRuns {
		return nil
	}
	return models.NoCapacity("", "You have %d runs that run or wait in this project; the maximum is %d. Stop one first.", n, maxRuns)
}

func checkDeploymentCount(n int64) error {
	if n < maxDeployments {
		return nil
	}
	return models.NoCapacity("", "You have %d deployments in this project; the maximum is %d. Stop one first.", n, maxDeployments)
}
