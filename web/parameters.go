package web

import (
	"context"
	"strconv"
	"strings"

	"weir/models"
)

// parameterValue formats a target launch parameter.
func parameterValue(ctx context.Context, p models.Parameter) string {
	n, err := strconv.ParseInt(p.Value, 10, 64)
	switch {
	case err != nil:
		return p.Value
	case strings.HasSuffix(p.Name, "_minutes"):
		return minutesValue(ctx, n)
	}
	return models.Quantity(p.Name, n)
}

// originWords are the layers that parameters come from.
var originWords = map[string]models.Text{
	"platform":    models.Say("Platform"),
	"project":     models.Say("Project"),
	"environment": models.Say("Environment"),
	"role":        models.Say("Role"),
	"member":      models.Say("You"),
}

// originWord is the layer that a parameter comes from, in a workspace of the reader or of somebody else.
func originWord(ctx context.Context, origin string, own bool) string {
	if origin == "member" && !own {
		return T(ctx, "Member")
	}
	return translateWord(ctx, originWords, origin)
}

// parameterName is the label of a launch parameter. Names of environment variables are
// not translated.
func parameterName(ctx context.Context, name string) string {
	if name == "gpu_memory_mib" {
		name = "launch.gpu_memory_mib"
	}
	return fieldName(ctx, name)
}

// launchFields are the inputs of launch parameters.
var launchFields = []string{"launch.gpus", "launch.cores", "launch.gpu_memory_mib", "launch.gpu_model",
	"launch.cpu_milli", "launch.memory_mib", "launch.shm_mib", "launch.idle_minutes", "launch.gpu_idle_minutes",
	"launch.kernel_idle_minutes", "launch.path"}
