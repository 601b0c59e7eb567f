"""What the configuration must accept and refuse, typed by hand from the documents named here."""

from __future__ import annotations

# Amazon FSx API reference, CreateFileSystem, StorageCapacity: PERSISTENT_2 on SSD takes 1200 GiB,
# 2400 GiB and increments of 2400 GiB.
FSX_CAPACITIES_GIB = (1200, 2400, 4800, 7200, 100_800)
FSX_REFUSED_CAPACITIES_GIB = {
    0: "1200",
    -1200: "1200",
    1: "1200",
    600: "1200",
    1199: "1200",
    1201: "1200 or 2400",
    1800: "1200 or 2400",
    2399: "1200 or 2400",
    2401: "2400 or 4800",
    3600: "2400 or 4800",
    6000: "4800 or 7200",
}
# Amazon FSx API reference, CreateFileSystemLustreConfiguration, PerUnitStorageThroughput.
FSX_THROUGHPUTS = (125, 250, 500, 1000)

# Amazon EC2 instance type guide, "Accelerated computing", with the GPUs that it names. Ampere or
# newer with 24 GB or more: A10G, L4, L40S, A100, H100, H200, B200, B300, RTX PRO.
GPU_TYPES = (
    "g5.xlarge",
    "g5.12xlarge",
    "g5.48xlarge",
    "g6.xlarge",
    "g6.48xlarge",
    "g6e.xlarge",
    "g6e.2xlarge",
    "g6e.12xlarge",
    "g6e.48xlarge",
    "gr6.4xlarge",
    "gr6.8xlarge",
    "g7.2xlarge",
    "g7e.2xlarge",
    "g7e.48xlarge",
    "p4d.24xlarge",
    "p4de.24xlarge",
    "p5.4xlarge",
    "p5.48xlarge",
    "p5e.48xlarge",
    "p5en.48xlarge",
    "p6-b200.48xlarge",
    "p6-b300.48xlarge",
)
# Turing (T4, T4g), Volta (V100), parts of an L4 (the "f" types), no NVIDIA GPU, no such type; and
# the family in which a valid neighbour must be named, None where nothing resembles it.
GPU_TYPES_REFUSED = {
    "g4dn.xlarge": "g5",
    "g4dn.12xlarge": "g5",
    "g5g.xlarge": "g5",
    "g5g.16xlarge": "g5",
    "g6f.large": "g6",
    "g6f.4xlarge": "g6",
    "gr6f.4xlarge": "gr6",
    "p3dn.24xlarge": "p4d",
    "p3.2xlarge": "p",
    "p2.xlarge": "p",
    "g6.3xlarge": "g6",
    "g5.medium": "g5",
    "G6.xlarge": "g6",
    "g6": "g6",
    "m7i.xlarge": None,
    "trn1.2xlarge": None,
    "inf2.xlarge": None,
    "t3.large": None,
}
CPU_TYPES = ("m7i.xlarge", "m5.large", "c6a.16xlarge", "c7i.2xlarge", "r6i.large", "m8i.large")
# Those of four vCPUs and more, which one node of all controllers needs.
SYSTEM_TYPES = ("m7i.xlarge", "c6a.16xlarge", "c7i.2xlarge")
CPU_TYPES_REFUSED = ("g6.xlarge", "g6f.large", "m7g.xlarge", "t3.large", "m7i.nano", "mac1.metal")

# Karpenter 1.x reference, "Instance Types" (made from DescribeInstanceTypes):
# type: vCPUs, memory (MiB), GPUs, GPU name, memory of a GPU (MiB), local NVMe (GB)
INSTANCE_FACTS = {
    "g6.24xlarge": (96, 393_216, 4, "L4", 22_888, 3760),
    "g6.48xlarge": (192, 786_432, 8, "L4", 22_888, 7520),
    "g6e.xlarge": (4, 32_768, 1, "L40S", 45_776, 250),
    "g6e.2xlarge": (8, 65_536, 1, "L40S", 45_776, 450),
    "g6e.4xlarge": (16, 131_072, 1, "L40S", 45_776, 600),
    "g6e.8xlarge": (32, 262_144, 1, "L40S", 45_776, 900),
    "g6e.12xlarge": (48, 393_216, 4, "L40S", 45_776, 3800),
    "g6e.16xlarge": (64, 524_288, 1, "L40S", 45_776, 1900),
    "g6e.24xlarge": (96, 786_432, 4, "L40S", 45_776, 3800),
    "g6e.48xlarge": (192, 1_572_864, 8, "L40S", 45_776, 7600),
    "g6f.large": (2, 8192, 0, "L4", 2861, 100),
    "g6f.4xlarge": (16, 65_536, 0, "L4", 11_444, 450),
}
# The same page's "pods" row is ENIs x (addresses - 1) + 2, without the EKS guide's cap of 110 pods
# below 30 vCPUs and 250 from there on ("Choose an optimal Amazon EC2 node instance type").
UNCAPPED_PODS = {"g6e.xlarge": 58, "g6e.2xlarge": 58}
CAPPED_PODS = {"g6e.4xlarge": (234, 110), "g6e.8xlarge": (234, 234), "g6e.12xlarge": (292, 250)}

# AWS General Reference, "Regional endpoints": the partition and the DNS suffix of a region.
REGIONS = {
    "us-east-1": ("aws", "amazonaws.com"),
    "ap-northeast-2": ("aws", "amazonaws.com"),
    "ap-southeast-4": ("aws", "amazonaws.com"),
    "us-gov-west-1": ("aws-us-gov", "amazonaws.com"),
    "cn-north-1": ("aws-cn", "amazonaws.com.cn"),
    "cn-northwest-1": ("aws-cn", "amazonaws.com.cn"),
}
# Zone ids are of the form use1-az4 (Amazon EC2 user guide, "Availability Zone IDs").
ZONE_IDS = ("use1-az4", "usw2-az1", "apne2-az3", "usgw1-az1", "cnn1-az1")

# Amazon CloudWatch Logs API reference, PutRetentionPolicy (the values up to three years).
RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096)

# Limits of physical names, in characters: Elastic Load Balancing API, CreateLoadBalancer, Name;
# IAM and STS quotas, role and instance profile; Amazon SQS API, CreateQueue; EKS API,
# CreateCluster, name; EC2 API, CreatePlacementGroup, GroupName.
NAME_LIMITS = {
    "load_balancer": 32,
    "karpenter_instance_profile": 128,
    "karpenter_queue": 80,
    "cluster": 100,
}
# AWS CloudFormation API reference, CreateStack, StackName.
STACK_NAME_LIMIT = 128
