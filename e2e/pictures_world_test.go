//go:build screenshots

package e2e

import (
	"fmt"
	"time"
)

// busy fills a server with three teams; it returns the member who runs, waits
// and has failed.
func busy(s *server) member {
	s.t.Helper()
	limit := resources{GPUCores: 400, GPUMemoryMiB: 320 << 10, CPUMilli: 16000, MemoryMiB: 32 << 10, StorageMiB: 200 << 10}
	ask := func(m member, project int64, name string, gpus, cores int64, more map[string]any) {
		body := map[string]any{"project_id": project, "name": name, "request": map[string]any{"gpus": gpus, "cores": cores, "cpu_milli": 1000, "memory_mib": 1024}}
		for k, v := range more {
			body[k] = v
		}
		m.must("POST", "/workspaces", body, nil)
	}
	speech := s.teamWithin("Speech models", limit.times(2), limit, "wang", "li")
	vision := s.team("Vision", limit, "zhao", "chen")
	genomics := s.team("Genomics", limit, "nora", "omar")
	wang := speech.Members[0]
	wang.running(speech.Project, "acoustic model")
	ask(speech.Members[1], speech.Project, "tokenizer", 1, 30, nil)
	ask(vision.Members[0], vision.Project, "detector", 1, 100, nil)
	ask(vision.Members[1], vision.Project, "segmentation", 2, 60, nil)
	ask(genomics.Members[0], genomics.Project, "variant calling", 1, 40, nil)
	ask(genomics.Members[1], genomics.Project, "assembly", 1, 100, nil)
	ask(wang, speech.Project, "distillation", 3, 100, map[string]any{"when_insufficient": "wait"})
	var broken id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "PyTorch 2.9", "language": "Python", "language_version": "3.12",
		"versions": map[string]string{"torch": "2.9.0"}, "command": []string{"/bin/false"}}, &broken)
	ask(wang, speech.Project, "evaluation", 0, 0, map[string]any{"environment_id": broken.ID})
	wang.await(8, "failed", patience)
	vision.Members[1].await(4, "running", patience)
	genomics.Members[1].await(6, "running", patience)
	paperwork(s, speech, vision)
	wang.must("POST", "/runs", map[string]any{"project_id": speech.Project, "command": []string{"python3", "-c", "print('epoch 1')"},
		"request": map[string]any{"cpu_milli": 100, "memory_mib": 64}}, nil)
	wang.must("POST", "/reservations", map[string]any{"project_id": speech.Project, "gpus": 1, "cores": 50, "duration_minutes": 120,
		"from": time.Now().UTC().Add(24 * time.Hour), "accept_later": true}, nil)
	var stopped id
	wang.must("POST", "/workspaces", map[string]any{"project_id": speech.Project, "environment_id": 1, "name": "notes", "request": map[string]any{"gpus": 0}}, &stopped)
	wang.await(stopped.ID, "running", patience)
	wang.must("POST", workspacePath(stopped.ID)+"/stop", nil, nil)
	wang.await(stopped.ID, "stopped", patience)
	return wang
}

// paperwork adds requests of several kinds and states, former members,
// departments, ends and a webhook that does not answer.
func paperwork(s *server, speech, vision team) {
	s.t.Helper()
	admin, wang, li := s.api(s.admin()), speech.Members[0], speech.Members[1]
	at := func(t team, rest string) string { return fmt.Sprintf("/projects/%d", t.Project) + rest }
	var mei, sun, research, lead, guest id
	admin.must("POST", "/users", map[string]any{"email": "mei@example.org", "name": "Mei", "password": password}, &mei)
	admin.must("POST", "/users", map[string]any{"email": "sun@example.org", "name": "Sun Li", "password": password}, &sun)
	admin.must("POST", "/departments", map[string]any{"name": "Research"}, &research)
	admin.must("POST", "/departments", map[string]any{"name": "Teaching"}, nil)
	admin.must("PUT", fmt.Sprintf("/users/%d", wang.User), map[string]any{"name": "Wang Fang", "department_id": research.ID, "admin": false, "auditor": false, "disabled": false}, nil)
	admin.must("POST", at(speech, "/roles"), map[string]any{"name": "lead", "permission": "manager", "limit": resources{}}, &lead)
	admin.must("POST", at(vision, "/roles"), map[string]any{"name": "guest", "permission": "viewer", "limit": resources{}}, &guest)
	for i, email := range []string{"mei@example.org", "sun@example.org"} {
		var place id
		admin.must("POST", at(vision, "/members"), map[string]any{"email": email, "role_id": guest.ID}, &place)
		admin.must("DELETE", at(vision, fmt.Sprintf("/members/%d", place.ID)), nil, nil)
		if i == 1 {
			admin.must("POST", at(vision, fmt.Sprintf("/members/%d/handover", place.ID)), map[string]any{"to_member_id": vision.Members[0].ID}, nil)
		}
	}
	until := time.Now().UTC().AddDate(0, 0, 6).Truncate(24 * time.Hour)
	admin.must("PUT", at(speech, fmt.Sprintf("/members/%d", wang.ID)), map[string]any{"role_id": speech.Role, "until": until}, nil)
	admin.must("PUT", at(speech, "/join-requests"), map[string]any{"on": true}, nil)

	more := map[string]any{"project_id": speech.Project, "quota": resources{GPUCores: 1200, GPUMemoryMiB: 960 << 10, CPUMilli: 48000, MemoryMiB: 96 << 10, StorageMiB: 600 << 10}}
	wang.must("POST", "/requests", map[string]any{"reason": "Two more training runs each night until the paper is submitted.", "quota": more}, nil)
	wang.must("POST", "/requests", map[string]any{"reason": "Larger batches.", "limit": map[string]any{"project_id": speech.Project, "role_id": speech.Role, "limit": resources{GPUCores: 500, GPUMemoryMiB: 400 << 10}}}, nil)
	admin.must("POST", "/requests/2/decision", map[string]any{"decision": "refuse", "reason": "The quota is not sufficient. Request a larger quota first."}, nil)
	li.must("POST", "/requests", map[string]any{"reason": "A course on diffusion models.", "project": map[string]any{"name": "Diffusion course", "description": "Exercises for 20 students",
		"quota": resources{GPUCores: 200, GPUMemoryMiB: 160 << 10, CPUMilli: 8000, MemoryMiB: 16 << 10}, "limit": resources{GPUCores: 10, GPUMemoryMiB: 8 << 10, CPUMilli: 400, MemoryMiB: 800}}}, nil)
	s.api(s.tokenOf("mei@example.org")).must("POST", "/requests", map[string]any{"reason": "I work on the acoustic model.", "join": map[string]any{"name": speech.Name}}, nil)
	wang.must("POST", "/requests", map[string]any{"reason": "The project continues.", "deadline": map[string]any{"project_id": speech.Project, "until": until.AddDate(0, 3, 0)}}, nil)
	wang.must("POST", "/requests", map[string]any{"reason": "A role for the evaluation.", "role": map[string]any{"project_id": speech.Project, "name": "evaluator", "permission": "member", "assign_to_requester": true, "limit": resources{GPUCores: 100}}}, nil)
	admin.must("POST", "/webhooks", map[string]any{"name": "Chat", "url": "https://receiver.invalid/hook", "enabled": true}, nil)
	admin.must("POST", "/webhooks/1/test", nil, nil)
}
