package models

import "time"

// MaxSplitPresets is how many split presets a project can have.
const MaxSplitPresets = 100

// SplitPreset is how models of an architecture are split, as a member of a project has described it.
type SplitPreset struct {
	ID           int64        `json:"id"`
	ProjectID    int64        `json:"project_id"`
	ServiceType  string       `json:"service_type" doc:"name by which plans and deployments use it"`
	Architecture string       `json:"architecture" doc:"of the models for which it is offered; empty: of all"`
	Split        ModelSplit   `json:"split" enum:"layers,heads,experts" doc:"where models are cut"`
	Combine      ModelCombine `json:"combine" enum:"pass_on,concatenate,sum,vote" doc:"what is done with the results of the parts"`
	Cuts         []string     `json:"cuts" gorm:"serializer:json" doc:"names of the layers before which models may be cut; empty: before all"`
	UserID       int64        `json:"user_id" doc:"who has described it"`
	CreatedAt    time.Time    `json:"created_at"`
}
