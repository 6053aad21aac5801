package broker

import (
	"slices"
	"strings"

	"weir/models"
	"weir/pool/timeline"
)

// Objectives decide between devices that are free at the same time. Administrators choose
// them.
type Objectives struct {
	Placement timeline.Objective
	// Models are the GPU models that each task type prefers, the best first; other models
	// are acceptable, too.
	Models map[models.TaskType][]string
}

// request is what a calendar decides on for a task type, with the ranks of the models of its
// devices.
func (s *Service) request(d timeline.Demand, task models.TaskType, devices []timeline.Device) timeline.Request {
	preferred := s.rules.Objectives.Models[task]
	if len(preferred) > 0 {
		d.Ranks = map[string]int{}
	}
	for _, dev := range devices {
		if i := slices.IndexFunc(preferred, func(p string) bool { return s.pool.MatchesModel(dev.Model, p) }); i >= 0 {
			d.Ranks[dev.Model] = i
		} else if d.Ranks != nil {
			d.Ranks[dev.Model] = len(preferred)
		}
	}
	return timeline.Request{Demand: d, Preference: timeline.Preference{Objective: s.rules.Objectives.Placement}}
}

// explain says by which objectives the devices of a task type are chosen.
func (o Objectives) explain(task models.TaskType) models.Text {
	why := models.Say("GPUs with the least capacity left")
	if o.Placement == timeline.Spread {
		why = models.Say("GPUs with the most capacity left")
	}
	if preferred := o.Models[task]; len(preferred) > 0 {
		return models.Say("Of what is available at the same time, the task type prefers %s, then %s.", strings.Join(preferred, ", "), why)
	}
	return models.Say("Of what is available at the same time, %s are reserved.", why)
}
