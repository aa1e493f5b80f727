/** The help dialog. */
import type { help as en } from "../en/help";

export const help: Readonly<Record<keyof typeof en, string>> = {
  "help.title": "帮助",
  "help.what": "注意力图显示模型关注哪里：每一行是一个查询，每一列是一个键，每个单元格是查询对键的权重。所有数值都由模型实际使用的数据算出。",
  "help.keys": "键盘快捷键",
  "help.keys.arrows": "移动选择；按住 Shift 每次移动十格",
  "help.keys.heads": "上一个、下一个头",
  "help.keys.layers": "上一层、下一层",
  "help.keys.views": "切换视图",
  "help.keys.zoom": "放大、缩小、显示全部",
  "help.keys.text": "跳到文本框",
  "help.keys.help": "显示本帮助",
  "help.keys.escape": "取消选择",
  "help.views": "视图",
  "help.words": "标签说明",
  "help.proof": "“已验证：与模型输出一致，误差 1.7 ulp (2e-7)”表示：用这些权重重新计算了模型的输出，误差为 1.7 个末位单位，即相对误差 2e-7。“未验证”会说明无法验证的原因。“不完整”会列出本次运行中同样计算了注意力、但未能被记录的模块。",
  "help.hatched": "带斜线的单元格已被屏蔽：由于因果性、填充或掩码。它们不是零，而是不存在。",
};
