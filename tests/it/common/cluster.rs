//! A cluster of masters, and slots that move between them.

use super::server::TestRedis;
use super::wait::eventually;

/// How many slots a cluster has.
const SLOTS: u32 = 16_384;

/// Running masters, each with an even share of the slots.
pub struct Cluster {
    pub nodes: Vec<TestRedis>,
}

impl Cluster {
    /// Starts three masters and waits until all slots are served.
    pub fn spawn() -> Self {
        let start = || TestRedis::setup().append_only().cluster().set("cluster-node-timeout", "3000").start();
        let cluster = Self { nodes: (0..3).map(|_| start()).collect() };
        let share = SLOTS.div_ceil(3);
        for (i, node) in (0..).zip(&cluster.nodes) {
            let (first, last) = (share * i, (share * (i + 1)).min(SLOTS) - 1);
            node.cli::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            node.cli::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
        }
        cluster.meet(0..3);
        cluster
    }

    /// Adds a replica of the master of this number.
    pub fn add_replica(&mut self, master: usize) {
        let id = self.id(master);
        let replica = TestRedis::setup().append_only().cluster().set("cluster-node-timeout", "3000").start();
        self.nodes.push(replica);
        let last = self.nodes.len() - 1;
        self.meet(0..last + 1);
        let replica = &self.nodes[last];
        eventually("the master is known to its replica", || {
            replica.try_cli::<()>(&["CLUSTER", "REPLICATE", &id]).is_ok()
        });
        eventually("the replica has the data", || {
            replica.cli::<String>(&["INFO", "replication"]).contains("master_link_status:up")
        });
        eventually("the master's neighbours know the replica", || {
            (0..last).all(|node| self.nodes[node].cli::<Vec<String>>(&["CLUSTER", "REPLICAS", &id]).len() == 1)
        });
    }

    fn meet(&self, nodes: std::ops::Range<usize>) {
        for node in &self.nodes[1..] {
            let (port, bus) = (node.port().to_string(), node.bus_port().to_string());
            self.nodes[0].cli::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        for node in nodes.clone() {
            eventually("the cluster stands", || {
                let info: String = self.nodes[node].cli(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{}", nodes.len()))
            });
        }
    }

    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    pub fn id(&self, node: usize) -> String {
        self.nodes[node].cli(&["CLUSTER", "MYID"])
    }

    /// The slot of an alias.
    pub fn slot(&self, alias: &str) -> u32 {
        self.nodes[0].cli(&["CLUSTER", "KEYSLOT", &format!("threadmill:{{{alias}}}:task:1")])
    }

    /// The node that a slot belongs to at the start.
    pub fn first_owner(slot: u32) -> usize {
        (slot / SLOTS.div_ceil(3)) as usize
    }

    /// Says that a slot is on its way; its keys stay.
    pub fn open_slot(&self, slot: u32, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes[to].cli::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.nodes[from].cli::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves one key of a slot that is on its way.
    pub fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.nodes[to].port().to_string();
        self.nodes[from].cli::<()>(&["MIGRATE", "127.0.0.1", &port, key, "0", "20000"]);
    }

    /// Moves all keys of a slot that is on its way, `at_once` in a step.
    pub fn move_keys(&self, slot: u32, from: usize, to: usize, at_once: u32) {
        loop {
            let words = ["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &at_once.to_string()];
            let keys: Vec<String> = self.nodes[from].cli(&words);
            if keys.is_empty() {
                return;
            }
            let port = self.nodes[to].port().to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            self.nodes[from].cli::<()>(&words);
        }
    }

    /// Ends the way of a slot: it belongs to this node.
    pub fn close_slot(&self, slot: u32, owner: usize) {
        let id = self.id(owner);
        let mut order: Vec<usize> = (0..3).collect();
        order.swap(0, owner);
        for node in order {
            self.nodes[node].cli::<()>(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &id]);
        }
        // A node that moves a slot on before it has heard of all others can have its claim overruled.
        let epoch = |node: &TestRedis| {
            let info: String = node.cli(&["CLUSTER", "INFO"]);
            info.lines().find(|line| line.starts_with("cluster_current_epoch")).map(str::to_owned)
        };
        eventually("all masters have heard of the move", || {
            self.nodes[..3].iter().all(|node| epoch(node) == epoch(&self.nodes[0]))
        });
    }

    /// Moves a slot as an operator's tool does.
    pub fn move_slot(&self, slot: u32, from: usize, to: usize) {
        self.open_slot(slot, from, to);
        self.move_keys(slot, from, to, 3);
        self.close_slot(slot, to);
    }
}
