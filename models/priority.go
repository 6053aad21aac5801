package models

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// PriorityClass is how urgent a reservation is.
type PriorityClass string

// Priority classes.
const (
	ClassLow    PriorityClass = "low"
	ClassNormal PriorityClass = "normal"
	ClassHigh   PriorityClass = "high"
)

// QoS is a quality of service: what a reservation is promised when a request with a higher
// score needs its devices.
type QoS string

// QoS levels, each of which promises less than the one before.
const (
	QoSGuaranteed  QoS = "guaranteed"  // it is never changed
	QoSStandard    QoS = "standard"    // until it starts, it can be moved within its window
	QoSBestEffort  QoS = "best_effort" // and shrunk to half of its GPU cores
	QoSPreemptible QoS = "preemptible" // and ended early after it has started
)

// TaskType is what a reservation is for.
type TaskType string

// Task types.
const (
	TaskInteractive TaskType = "interactive"
	TaskInference   TaskType = "inference"
	TaskTraining    TaskType = "training"
	TaskBatch       TaskType = "batch"
)

// Values of the parts of a request's priority, the highest factor of a score first.
var (
	PriorityClasses = []PriorityClass{ClassHigh, ClassNormal, ClassLow}
	QoSLevels       = []QoS{QoSGuaranteed, QoSStandard, QoSBestEffort, QoSPreemptible}
	TaskTypes       = []TaskType{TaskInteractive, TaskInference, TaskTraining, TaskBatch}
)

// Words is the class's name for users.
func (c PriorityClass) Words() Text {
	switch c {
	case ClassHigh:
		return Say("high")
	case ClassLow:
		return Say("low")
	default:
		return Say("normal")
	}
}

// Words is the level's name for users, with what it promises.
func (l QoS) Words() Text {
	switch l {
	case QoSGuaranteed:
		return Say("guaranteed: never changed")
	case QoSBestEffort:
		return Say("best effort: can be moved or halved before it starts")
	case QoSPreemptible:
		return Say("preemptible: can also end early")
	default:
		return Say("standard: can be moved before it starts")
	}
}

// Words is the task type's name for users.
func (t TaskType) Words() Text {
	switch t {
	case TaskInference:
		return Say("inference")
	case TaskTraining:
		return Say("training")
	case TaskBatch:
		return Say("batch")
	default:
		return Say("interactive")
	}
}

// ScorePart is one part of a score: its factor, from 0 to 1, and what it adds.
type ScorePart struct {
	Name   string  `json:"name" enum:"class,qos,task,client,fair_share,attendance,waiting" doc:"name of the part"`
	Factor float64 `json:"factor" doc:"factor, from 0 to 1"`
	Points float64 `json:"points" doc:"what it adds to the score"`
}

// Words is the part's name for users.
func (p ScorePart) Words() Text {
	switch p.Name {
	case "class":
		return Say("Priority class")
	case "qos":
		return Say("QoS level")
	case "task":
		return Say("Task type")
	case "client":
		return Say("Priority of the project")
	case "fair_share":
		return Say("Fair share")
	case "attendance":
		return Say("Reservations that were used")
	default:
		return Say("Waiting time")
	}
}

// ScoreParts explain a score.
type ScoreParts []ScorePart

// Value stores the parts as JSON.
func (p ScoreParts) Value() (driver.Value, error) {
	if p == nil {
		return "[]", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// Scan reads the parts from a database.
func (p *ScoreParts) Scan(value any) error {
	switch v := value.(type) {
	case string:
		return json.Unmarshal([]byte(v), p)
	case []byte:
		return json.Unmarshal(v, p)
	default:
		return fmt.Errorf("models: parts of a score of type %T", value)
	}
}
