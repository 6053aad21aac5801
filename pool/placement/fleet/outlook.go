package fleet

// Outlook is what tasks like those that came could use of free GPU, on
// machines whose CPU and memory limit nobody: the measure behind [FGD] and
// [Weir] without its CPU side. It does not change, and many may ask it at once.
type Outlook struct{ usable *usability }

// NewOutlook expects tasks like those of a workload, where a task that stands
// twice is twice as likely. Only their GPUs count; whoever knows of different
// models makes an outlook for each, of the tasks that it would serve.
func NewOutlook(workload []Task) *Outlook {
	gpus := make([]Task, 0, len(workload))
	for _, t := range workload {
		if t.GPUs > 0 && t.Check() == nil {
			gpus = append(gpus, Task{GPUs: t.GPUs, GPUMilli: t.GPUMilli})
		}
	}
	// The one model here is called "", and a task without models allows it.
	one := Fleet{models: []string{""}}
	return &Outlook{newUsability(one.kinds(gpus), 0)}
}

// Worth is what the tasks could use of the GPUs of one machine that have this
// much left, in milli-GPU times tasks: what a task that came n times could
// use, counts n times. Each number must be in 0..[Whole].
func (o *Outlook) Worth(left []int32) int64 { return o.usable.of(0, left) }

// Typical are the tasks of the most frequent kinds, cut where they make up 95
// percent of the workload: those that [FGD] listens to.
func Typical(workload []Task) []Task {
	var tasks []Task
	for _, k := range new(Fleet).typical(workload) {
		for range k.count {
			tasks = append(tasks, k.Task)
		}
	}
	return tasks
}

// Grade is how [FGD] rounds by how many GPUs fragmentation falls: squeezed by
// a sigmoid and cut to a whole number of 0..100, the better the higher.
func Grade(gpus float64) int32 { return int32(100 * sigmoid(gpus)) }
